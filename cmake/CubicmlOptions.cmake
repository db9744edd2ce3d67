# What a build can be told. The presets set these.
option(CUBICML_BUILD_TESTS "Build the tests and benchmarks"
  ${PROJECT_IS_TOP_LEVEL})
option(CUBICML_WITH_TORCH
  "Build what needs LibTorch: the surrogate, the server, the example job" ON)
option(CUBICML_WERROR "Treat our own code's warnings as errors" OFF)
option(CUBICML_CLANG_TIDY "Run clang-tidy while compiling" OFF)
set(CUBICML_SANITIZE "" CACHE STRING
  "Sanitizers for our code: empty, address;undefined, or thread")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)

# Linking takes 0.1 s with mold or lld and over a second with bfd; a clean
# rebuild takes seconds with ccache. Both are used where they are installed.
find_program(CUBICML_CCACHE ccache)
if(CUBICML_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # A base directory, so that all clones share what is the same in them; the
  # rest lets precompiled headers into the cache.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
    CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=true
    CCACHE_SLOPPINESS=pch_defines,time_macros ${CUBICML_CCACHE})
  add_compile_options($<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
endif()
find_program(CUBICML_MOLD mold)
find_program(CUBICML_LLD ld.lld)
if(CUBICML_MOLD)
  add_link_options(-fuse-ld=mold)
elseif(CUBICML_LLD)
  add_link_options(-fuse-ld=lld)
endif()

add_library(cubicml_warnings INTERFACE)
target_compile_options(cubicml_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion
  -Wnon-virtual-dtor -Woverloaded-virtual -Wold-style-cast -Wcast-align
  -Wnull-dereference -Wextra-semi
  $<$<CXX_COMPILER_ID:GNU>:-Wsuggest-override;-Wduplicated-cond;-Wlogical-op>
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>
  # Where files are compiled together, each of them looks like a header, in which
  # an anonymous namespace would be a mistake.
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<BOOL:${CMAKE_UNITY_BUILD}>>:-Wno-subobject-linkage>
  $<$<BOOL:${CUBICML_WERROR}>:-Werror>)

add_library(cubicml_sanitizers INTERFACE)
if(CUBICML_SANITIZE)
  string(REPLACE ";" "," cubicml_sanitize_list "${CUBICML_SANITIZE}")
  set(cubicml_sanitize_flags -fsanitize=${cubicml_sanitize_list}
    -fno-sanitize-recover=all -fno-omit-frame-pointer)
  if("thread" IN_LIST CUBICML_SANITIZE)
    # The distribution's Protobuf is built without; where its headers see this
    # macro, messages get another layout.
    list(APPEND cubicml_sanitize_flags -U__SANITIZE_THREAD__)
  endif()
  target_compile_options(cubicml_sanitizers INTERFACE
    ${cubicml_sanitize_flags})
  target_link_options(cubicml_sanitizers INTERFACE ${cubicml_sanitize_flags})
endif()
