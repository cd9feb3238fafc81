"""The model -> formatted Python source; writes no files."""
