"""The YAML in spec/ -> the model: nodes with their places, the notation of types, checks, versions."""
