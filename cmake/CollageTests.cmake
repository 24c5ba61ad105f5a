# Ctest entries: every gtest case is one, each has a time limit, and its label says which preset leaves it out. Which cases
# are slow, run alone or share a start is written in tests/slow_cases.cmake.
include(GoogleTest)
include(${CMAKE_SOURCE_DIR}/tests/slow_cases.cmake)

# Seconds that a case may take. The slowest of a kind takes a fifth of it on two cores, so a busy machine fails none.
set(COLLAGE_QUICK_LIMIT 120)
set(COLLAGE_SLOW_LIMIT 900)
set(COLLAGE_FULL_LIMIT 3000)
if(COLLAGE_SANITIZE)  # runs 3 to 15 times as long
  set(COLLAGE_QUICK_LIMIT 900)
  set(COLLAGE_SLOW_LIMIT 3600)
endif()

# What gtest prints last where a process ran cases and skipped all of them.
set(COLLAGE_ALL_SKIPPED
    "\\[  PASSED  \\] 0 tests\\.\n\\[  SKIPPED \\] [0-9]+ tests?, listed below:\n(\\[  SKIPPED \\] [^\n]*\n)+$")

# collage_discover(TARGET PREFIX [SUFFIX s] [FILTER f] PROPERTIES …): an entry for each case that the filter takes. The
# executable lists its cases when ctest runs first after it was linked.
function(collage_discover target prefix)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "SUFFIX;FILTER" "PROPERTIES")
  gtest_discover_tests(${target} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 120 NO_PRETTY_TYPES NO_PRETTY_VALUES
                       TEST_PREFIX ${prefix}. TEST_SUFFIX "${arg_SUFFIX}" TEST_FILTER "${arg_FILTER}"
                       PROPERTIES ${arg_PROPERTIES})
endfunction()

# collage_cases(TARGET PREFIX [ONLY pattern] [EXCEPT pattern]): the cases of a gtest executable as PREFIX.SUITE.CASE. The
# lists of tests/slow_cases.cmake are for PREFIX: slow_PREFIX, alone_PREFIX and together_PREFIX.
function(collage_cases target prefix)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "ONLY;EXCEPT" "")
  if(NOT arg_ONLY)
    set(arg_ONLY "*")
  endif()
  list(TRANSFORM together_${prefix} REPLACE "^[^=]*=" "" OUTPUT_VARIABLE elsewhere)
  list(APPEND elsewhere ${arg_EXCEPT} ${alone_${prefix}})
  list(JOIN elsewhere ":" not_slow)
  list(APPEND elsewhere ${slow_${prefix}})
  list(JOIN elsewhere ":" not_quick)
  list(JOIN slow_${prefix} ":" slow)
  list(JOIN alone_${prefix} ":" alone)
  collage_discover(${target} ${prefix} FILTER "${arg_ONLY}-${not_quick}" PROPERTIES TIMEOUT ${COLLAGE_QUICK_LIMIT})
  if(slow)
    collage_discover(${target} ${prefix} FILTER "${slow}-${not_slow}"
                     PROPERTIES TIMEOUT ${COLLAGE_SLOW_LIMIT} LABELS slow)
  endif()
  if(alone)
    collage_discover(${target} ${prefix} FILTER "${alone}"
                     PROPERTIES TIMEOUT ${COLLAGE_SLOW_LIMIT} LABELS slow RUN_SERIAL TRUE)
  endif()
  foreach(entry ${together_${prefix}})
    string(REGEX REPLACE "=.*" "" name ${entry})
    string(REGEX REPLACE "^[^=]*=" "" pattern ${entry})
    add_test(NAME ${prefix}.${name} COMMAND ${target} --gtest_filter=${pattern})
    set_tests_properties(${prefix}.${name} PROPERTIES TIMEOUT ${COLLAGE_SLOW_LIMIT} LABELS slow
                         SKIP_REGULAR_EXPRESSION "${COLLAGE_ALL_SKIPPED}")
  endforeach()
endfunction()

# collage_full_cases(TARGET PREFIX ENVIRONMENT [FILTER f]): the cases again in the full test, as PREFIX.SUITE.CASE.full,
# with an environment that makes them do more.
function(collage_full_cases target prefix environment)
  cmake_parse_arguments(PARSE_ARGV 3 arg "" "FILTER" "")
  collage_discover(${target} ${prefix} SUFFIX .full FILTER "${arg_FILTER}"
                   PROPERTIES TIMEOUT ${COLLAGE_FULL_LIMIT} LABELS full ENVIRONMENT ${environment})
endfunction()

# collage_limit_tests(): called last in a folder, gives its tests without one a time limit, the label `slow` to those that
# are listed as such, and lets exit code 77 say that a test was skipped.
function(collage_limit_tests)
  get_property(tests DIRECTORY PROPERTY TESTS)
  foreach(test ${tests})
    get_property(limit TEST ${test} PROPERTY TIMEOUT)
    get_property(labels TEST ${test} PROPERTY LABELS)
    get_property(skips TEST ${test} PROPERTY SKIP_REGULAR_EXPRESSION)
    if(NOT labels AND test IN_LIST slow_tests)
      set(labels slow)
      set_property(TEST ${test} PROPERTY LABELS slow)
    endif()
    if(test IN_LIST alone_tests)
      set_property(TEST ${test} PROPERTY RUN_SERIAL TRUE)
    endif()
    if(NOT skips)
      set_property(TEST ${test} PROPERTY SKIP_RETURN_CODE 77)
    endif()
    if(limit)
      continue()
    elseif(labels)
      set_property(TEST ${test} PROPERTY TIMEOUT ${COLLAGE_SLOW_LIMIT})
    else()
      set_property(TEST ${test} PROPERTY TIMEOUT ${COLLAGE_QUICK_LIMIT})
    endif()
  endforeach()
endfunction()
