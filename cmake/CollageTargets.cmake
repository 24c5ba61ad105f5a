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
  target_compile_options(collage_options INTERFACE -fsanitize=fuzzer-no-link)
endif()
target_include_directories(collage_options INTERFACE ${CMAKE_SOURCE_DIR}/src ${CMAKE_BINARY_DIR}/generated)

# collage_stage(NAME [sources in other folders…]): the objects of src/NAME, one folder with all files below it.
function(collage_stage name)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cc)
  if(NOT sources)
    return()
  endif()
  add_library(collage_${name} OBJECT ${sources})
  target_link_libraries(collage_${name} PRIVATE collage_options PUBLIC fmt::fmt)
  target_include_directories(collage_${name} PUBLIC $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include>)
endfunction()

# collage_module(NAME SOURCES… ): a module that is opened when first needed (see support/dynamic_library.h).
function(collage_module name)
  add_library(${name} MODULE ${ARGN})
  target_link_libraries(${name} PRIVATE collage_options)
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/include)
  install(TARGETS ${name} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endfunction()

# collage_unit_test(STAGE LIBRARIES…): one executable of tests/unit/STAGE/*_test.cc.
function(collage_unit_test stage)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/unit/${stage}/*.cc)
  if(NOT sources)
    return()
  endif()
  add_executable(test_${stage} ${sources})
  target_link_libraries(test_${stage} PRIVATE collage_options ${ARGN} GTest::gmock GTest::gtest GTest::gtest_main)
  target_include_directories(test_${stage} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  target_compile_definitions(test_${stage} PRIVATE COLLAGE_TEST_DATA="${CMAKE_SOURCE_DIR}/tests"
                             COLLAGE_PYTHON="${COLLAGE_PYTHON_ENV}/bin/python")
  add_test(NAME unit.${stage} COMMAND test_${stage})
  set_tests_properties(unit.${stage} PROPERTIES TIMEOUT 300)
endfunction()
