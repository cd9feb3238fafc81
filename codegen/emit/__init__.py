"""The model -> formatted Python; writes nothing."""
