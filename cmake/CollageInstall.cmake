# `cmake --install` and find_package(Collage): targets Collage::runtime (run executables), Collage::ir (write a toolchain)
# and Collage::collage (compile).
include(CMakePackageConfigHelpers)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/Collage)

install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/collage DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(NOT SKBUILD)  # a wheel has these by itself
  install(FILES ${CMAKE_SOURCE_DIR}/python/collage/ray_runner.py DESTINATION ${CMAKE_INSTALL_DATADIR}/collage)
  install(FILES ${CMAKE_SOURCE_DIR}/LICENSE ${CMAKE_SOURCE_DIR}/NOTICE DESTINATION ${CMAKE_INSTALL_DOCDIR})
endif()
# The build tree has licences where an installed one has them: `collage bundle` takes them along. Those of what is compiled in
# are of the packages that NOTICE names.
foreach(name LICENSE NOTICE)
  configure_file(${CMAKE_SOURCE_DIR}/${name} ${CMAKE_BINARY_DIR}/share/doc/Collage/${name} COPYONLY)
endforeach()
file(STRINGS ${CMAKE_SOURCE_DIR}/NOTICE compiled_in REGEX "^  [a-z].*; (compiled in|in every page)")
foreach(row ${compiled_in})
  string(REGEX MATCH "[^ ]+" package "${row}")
  file(GLOB texts /usr/share/doc/${package}/copyright ${COLLAGE_SITE_PACKAGES}/${package}-*.dist-info/LICENSE*
       ${COLLAGE_SITE_PACKAGES}/${package}-*.dist-info/licenses/LICENSE*)
  if(NOT texts)
    message(WARNING "there is no licence text of '${package}', which is compiled in")
    continue()
  endif()
  list(GET texts 0 text)
  configure_file(${text} ${CMAKE_BINARY_DIR}/share/doc/Collage/compiled_in/${package} COPYONLY)
  if(NOT SKBUILD)
    install(FILES ${CMAKE_BINARY_DIR}/share/doc/Collage/compiled_in/${package} DESTINATION ${CMAKE_INSTALL_DOCDIR}/compiled_in)
  endif()
endforeach()
file(RELATIVE_PATH pc_to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)  # the folder may be moved
string(REGEX REPLACE "/$" "" pc_to_prefix ${pc_to_prefix})
configure_file(${CMAKE_SOURCE_DIR}/cmake/collage.pc.in ${CMAKE_BINARY_DIR}/generated/collage.pc @ONLY)
if(NOT SKBUILD)
  install(FILES ${CMAKE_BINARY_DIR}/generated/collage.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()
install(EXPORT CollageTargets NAMESPACE Collage:: DESTINATION ${package_folder})
configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/CollageConfig.cmake.in
                              ${CMAKE_BINARY_DIR}/generated/CollageConfig.cmake
                              INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/generated/CollageConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/generated/CollageConfig.cmake ${CMAKE_BINARY_DIR}/generated/CollageConfigVersion.cmake
        DESTINATION ${package_folder})
