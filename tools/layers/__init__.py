"""What `tools/check_layers` checks: one module for each kind of rule, over one description of the tree."""
