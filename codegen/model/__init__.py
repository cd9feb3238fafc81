"""The YAML in spec/ -> the model: nodes with places, notation of types, checks, versions."""
