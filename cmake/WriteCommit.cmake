# cmake -DSOURCE=DIR -DOUTPUT=FILE -P WriteCommit.cmake: writes a header with the commit of the tree, if that has changed.
# Without git, or outside of a checkout, it is empty.
cmake_minimum_required(VERSION 3.25)
execute_process(
  COMMAND git describe --always --dirty --abbrev=10 --exclude=*
  WORKING_DIRECTORY ${SOURCE}
  OUTPUT_VARIABLE commit
  ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#define COLLAGE_COMMIT \"@commit@\"\n" @ONLY)
