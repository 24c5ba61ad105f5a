# `cmake --install` and find_package(Collage): targets Collage::runtime (run executables), Collage::ir (write a toolchain)
# and Collage::collage (compile).
include(CMakePackageConfigHelpers)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/Collage)

install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/collage DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(NOT SKBUILD)  # a wheel has these by itself
  install(FILES ${CMAKE_SOURCE_DIR}/python/collage/ray_runner.py DESTINATION ${CMAKE_INSTALL_DATADIR}/collage)
  install(FILES ${CMAKE_SOURCE_DIR}/LICENSE ${CMAKE_SOURCE_DIR}/NOTICE DESTINATION ${CMAKE_INSTALL_DOCDIR})
endif()
foreach(name LICENSE NOTICE)  # the build tree has them where an installed one has: `collage bundle` takes them along
  configure_file(${CMAKE_SOURCE_DIR}/${name} ${CMAKE_BINARY_DIR}/share/doc/Collage/${name} COPYONLY)
endforeach()
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
