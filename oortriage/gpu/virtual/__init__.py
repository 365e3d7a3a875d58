"""The virtual GPU: Triton's own compiler for a card that is not there, stopped once shared memory is allocated.

Everything here runs in a child process of the command (``replay/child``); the rest of the package
imports none of it at start-up.
"""
