# Options shared by all targets, and the functions that declare them.
add_library(collage_options INTERFACE)
target_compile_options(collage_options INTERFACE -Wall -Wextra -Werror -Wno-missing-field-initializers)
if(COLLAGE_LLD)
  target_link_options(collage_options INTERFACE -fuse-ld=lld)
endif()
if(COLLAGE_SANITIZE)
  target_compile_options(collage_options INTERFACE -fsanitize=${COLLAGE_SANITIZE} -fno-sanitize-recover=all
                         -fno-omit-frame-pointer)
  target_link_options(collage_options INTERFACE -fsanitize=${COLLAGE_SANITIZE})
endif()
if(COLLAGE_FUZZ)
  # GCC 12's std::stable_sort calls what C++17 deprecates.
  target_compile_options(collage_options INTERFACE -fsanitize=fuzzer-no-link -Wno-deprecated-declarations)
endif()
add_library(collage_test_options INTERFACE)
# At -O1, GCC 12 takes `"text" + std::string` for a write out of bounds (GCC bug 105329): warnings that the compiler and
# the runtime, at -O2, keep.
target_compile_options(
  collage_test_options INTERFACE $<$<CONFIG:Release>:-O1>
  $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds> $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
  $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overflow>)
target_include_directories(collage_options INTERFACE ${CMAKE_SOURCE_DIR}/src ${CMAKE_BINARY_DIR}/generated)

# What nearly every source includes, compiled once: reading it took half of a source's time. Sources name what they use all
# the same, and build without it (-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON).
set(nothing ${CMAKE_BINARY_DIR}/generated/nothing.cc)
file(WRITE ${nothing} "")
set(COLLAGE_COMMON_HEADERS <algorithm> <functional> <map> <memory> <optional> <set> <span> <string> <unordered_map>
    <unordered_set> <variant> <vector> <fmt/format.h>)
add_library(collage_headers OBJECT EXCLUDE_FROM_ALL ${nothing})
target_link_libraries(collage_headers PRIVATE collage_options fmt::fmt)
target_precompile_headers(collage_headers PRIVATE ${COLLAGE_COMMON_HEADERS})

# collage_objects(NAME SOURCES…): objects that libraries and modules are made of.
function(collage_objects name)
  add_library(${name} OBJECT ${ARGN})
  target_link_libraries(${name} PRIVATE collage_options PUBLIC fmt::fmt)
  target_precompile_headers(${name} REUSE_FROM collage_headers)
  target_include_directories(${name} PUBLIC $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include>)
endfunction()

# collage_stage(NAME): the objects of src/NAME, one folder with all files below it.
function(collage_stage name)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cc)
  if(NOT sources)
    return()
  endif()
  collage_objects(collage_${name} ${sources})
endfunction()

# collage_module(NAME SOURCES… [HEADERS…]): a module that is opened when first needed (see support/dynamic_library.h). HEADERS
# are large ones that most of its sources include: they are compiled once, with the common ones.
function(collage_module name)
  cmake_parse_arguments(arg "" "" HEADERS ${ARGN})
  add_library(${name} MODULE ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE collage_options fmt::fmt)
  if(arg_HEADERS)
    target_precompile_headers(${name} PRIVATE ${COLLAGE_COMMON_HEADERS} ${arg_HEADERS})
  else()
    target_precompile_headers(${name} REUSE_FROM collage_headers)
  endif()
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/include)
  install(TARGETS ${name} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endfunction()

# collage_link_packaged(MODULE FILE [TARGET]): links a module with a library that may be in the Python environment. An installed
# module has no path into that: src/support/dynamic_library.h says how the library is found.
set_property(GLOBAL PROPERTY COLLAGE_MODULE_LIBRARIES "")
function(collage_link_packaged module file)
  list(APPEND ARGN ${file})
  list(GET ARGN 0 link)
  target_link_libraries(${module} PRIVATE ${link})
  cmake_path(IS_PREFIX COLLAGE_PYTHON_ENV ${file} is_packaged)
  if(is_packaged)
    # `collage bundle --package` writes a longer path in the place of this one; slashes at the end change nothing.
    get_target_property(search ${module} INSTALL_RPATH)
    string(REPEAT "/" 80 room)
    set_target_properties(${module} PROPERTIES INSTALL_RPATH_USE_LINK_PATH OFF INSTALL_RPATH "${search}${room}")
    file(RELATIVE_PATH path ${COLLAGE_SITE_PACKAGES} ${file})
    set_property(GLOBAL APPEND_STRING PROPERTY COLLAGE_MODULE_LIBRARIES "lib${module}.so ${path}\n")
  endif()
endfunction()

# collage_portable_module(MODULE LINK…): the objects of a module, linked once more with static libraries, as lib/portable/ and
# the module's file. Bundles have it in the module's place. Only the target portable_modules builds it.
function(collage_portable_module module)
  add_library(${module}_portable MODULE EXCLUDE_FROM_ALL $<TARGET_OBJECTS:${module}>)
  set_target_properties(${module}_portable PROPERTIES OUTPUT_NAME ${module} LINKER_LANGUAGE CXX INSTALL_RPATH "$ORIGIN/.."
                        LIBRARY_OUTPUT_DIRECTORY ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/portable)
  target_link_libraries(${module}_portable PRIVATE collage_options fmt::fmt ${ARGN})
  target_link_options(${module}_portable PRIVATE LINKER:--exclude-libs,ALL LINKER:--gc-sections LINKER:--strip-all)
  add_dependencies(portable_modules ${module}_portable)
  install(TARGETS ${module}_portable LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/portable OPTIONAL)
endfunction()
add_custom_target(portable_modules)

# collage_test_executable(NAME LIBRARIES…): what all executables of tests share. Tests are compiled once and run for seconds,
# so they are optimised less than what they test, and they share one precompiled header of GoogleTest and the standard
# library.
if(COLLAGE_TESTS)
  add_library(collage_test_headers OBJECT EXCLUDE_FROM_ALL ${nothing})
  set_target_properties(collage_test_headers PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(collage_test_headers PRIVATE -fPIE)  # as executables are compiled
  target_link_libraries(collage_test_headers PRIVATE collage_options collage_test_options fmt::fmt GTest::gmock GTest::gtest)
  target_precompile_headers(collage_test_headers PRIVATE <gmock/gmock.h> <gtest/gtest.h> <fmt/format.h> <fmt/ranges.h>
                            <filesystem> <functional> <map> <optional> <random> <set> <span> <sstream> <vector>)
endif()
function(collage_test_executable name)
  target_link_libraries(${name} PRIVATE collage_options collage_test_options ${ARGN} GTest::gmock GTest::gtest)
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE fmt::fmt)  # the precompiled header was made with its definitions
  target_precompile_headers(${name} REUSE_FROM collage_test_headers)
endfunction()

# collage_unit_test(STAGE LIBRARIES…): one executable of tests/unit/STAGE/*_test.cc, whose cases are tests.
function(collage_unit_test stage)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/unit/${stage}/*.cc)
  if(NOT sources)
    return()
  endif()
  add_executable(test_${stage} ${sources})
  collage_test_executable(test_${stage} ${ARGN} GTest::gtest_main)
  collage_cases(test_${stage} unit.${stage})
endfunction()
