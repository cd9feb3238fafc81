"""The generator: from the protocol in spec/ to the package in generated/; never shipped in the wheel."""
