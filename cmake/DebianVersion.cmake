# collage_debian_version(VARIABLE PACKAGE FILE): the version of a library that does not tell it itself: its package's, or where
# there is none, a digest of FILE, one of its headers.
function(collage_debian_version variable package file)
  find_program(COLLAGE_DPKG_QUERY dpkg-query)
  set(version "")
  if(COLLAGE_DPKG_QUERY)
    execute_process(COMMAND ${COLLAGE_DPKG_QUERY} -W -f=\${Version} ${package} OUTPUT_VARIABLE version ERROR_QUIET)
  endif()
  if(version STREQUAL "")
    file(SHA256 ${file} digest)
    string(SUBSTRING ${digest} 0 8 version)
  endif()
  set(${variable} ${version} PARENT_SCOPE)
endfunction()
