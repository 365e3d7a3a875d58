"""The folder that ``oortriage run`` puts on the module path of the user's processes."""
