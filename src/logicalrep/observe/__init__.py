"""The figures that tell how replicating goes, and the ways to show them."""
