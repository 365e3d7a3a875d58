"""Bytes to lines to one stream a process: whatever the file is, in bounded memory."""
