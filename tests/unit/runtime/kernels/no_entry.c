/* no_entry.c: an object that is no kernel. */
int something_else = 1;
