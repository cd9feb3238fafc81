"""Copies of whole tables under snapshots."""
