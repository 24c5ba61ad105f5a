"""The rules of `tools/check_layers`: one module for each kind of rule, over one description of the tree."""
