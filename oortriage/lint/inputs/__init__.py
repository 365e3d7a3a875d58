"""One file a kind of input: each turns a text into units, executes nothing and expands nothing without a bound."""
