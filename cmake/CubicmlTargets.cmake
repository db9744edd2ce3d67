# The few ways in which this project makes targets, so that every folder says
# only what it consists of and what it may see.

if(CUBICML_CLANG_TIDY)
  find_program(CUBICML_CLANG_TIDY_PROGRAM clang-tidy REQUIRED)
endif()

function(cubicml_configure_target target)
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
  target_link_libraries(${target} PRIVATE
    $<BUILD_INTERFACE:cubicml_warnings> $<BUILD_INTERFACE:cubicml_sanitizers>)
  if(CUBICML_CLANG_TIDY)
    set_target_properties(${target} PROPERTIES CXX_CLANG_TIDY
      "${CUBICML_CLANG_TIDY_PROGRAM};--quiet")
  endif()
endfunction()

# cubicml_add_library(NAME SRCS ... HDRS ... PUBLIC deps ... PRIVATE deps ...)
# makes cubicml_NAME and its alias cubicml::NAME.
function(cubicml_add_library name)
  cmake_parse_arguments(arg "" "" "SRCS;HDRS;PUBLIC;PRIVATE" ${ARGN})
  add_library(cubicml_${name} STATIC ${arg_SRCS} ${arg_HDRS})
  add_library(cubicml::${name} ALIAS cubicml_${name})
  cubicml_configure_target(cubicml_${name})
  target_link_libraries(cubicml_${name}
    PUBLIC ${arg_PUBLIC} PRIVATE ${arg_PRIVATE})
endfunction()

# cubicml_add_executable(NAME SRCS ... PRIVATE deps ...)
function(cubicml_add_executable name)
  cmake_parse_arguments(arg "" "" "SRCS;PRIVATE" ${ARGN})
  add_executable(${name} ${arg_SRCS})
  cubicml_configure_target(${name})
  target_link_libraries(${name} PRIVATE ${arg_PRIVATE})
endfunction()

# What ctest runs; the sanitizer presets build only this.
add_custom_target(cubicml_tests)

# cubicml_add_test(NAME SRCS ... PRIVATE deps ... [LABELS ...] [TIMEOUT s]
#                  [NOT_UNDER address|thread ...])
# makes a GoogleTest program; ctest runs it as one test, since listing the cases
# of a program that loads LibTorch costs half a second for each. It is left out
# of a build with a sanitizer that it names: where libraries that are not
# instrumented raise false alarms, or where there is nothing that the sanitizer
# looks for and much to compute.
function(cubicml_add_test name)
  cmake_parse_arguments(arg "" "TIMEOUT" "SRCS;PRIVATE;LABELS;NOT_UNDER" ${ARGN})
  cubicml_add_executable(${name} SRCS ${arg_SRCS}
    PRIVATE ${arg_PRIVATE} GTest::gtest GTest::gmock GTest::gtest_main)
  # The flag that some libraries ask for, on all: one set of headers fits all.
  target_compile_options(${name} PRIVATE -pthread)
  target_precompile_headers(${name} REUSE_FROM cubicml_test_headers)
  foreach(sanitizer IN LISTS arg_NOT_UNDER)
    if(sanitizer IN_LIST CUBICML_SANITIZE)
      return()
    endif()
  endforeach()
  add_dependencies(cubicml_tests ${name})
  add_test(NAME ${name} COMMAND ${name}
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  set_tests_properties(${name} PROPERTIES
    TIMEOUT ${arg_TIMEOUT} LABELS "${arg_LABELS}")
endfunction()
