"""The model -> the reference: a site without scripts, and its pictures."""
