"""The commands of the tools that the page compares, each by the contract of conformance/README.md."""
