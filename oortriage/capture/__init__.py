"""Capture: a program runs as it is, and a kernel that does not fit leaves a capsule behind.

``hook/`` is what goes into the user's processes: standard library only, for any Python from 3.9 on, read by
no other room. Everything else here runs in the command's own process.
"""
