"""Receivers for other platforms. Each is complete: copy only the file or folder that you need."""
