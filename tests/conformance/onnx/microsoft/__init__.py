"""Random cases of operators of com.microsoft."""
