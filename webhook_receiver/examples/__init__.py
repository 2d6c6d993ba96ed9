"""Receivers for other places, each complete in itself: copy the file or the folder that you need."""
