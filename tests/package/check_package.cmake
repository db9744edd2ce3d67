# Installs the component development, builds the consumer against it, checks
# that nothing else came along, and runs the consumer.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "failed with ${result}: ${ARGN}")
  endif()
endfunction()

set(prefix ${WORK_DIR}/prefix)
file(REMOVE_RECURSE ${WORK_DIR})
run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${prefix}
  --component development)

file(GLOB_RECURSE headers RELATIVE ${prefix}/include ${prefix}/include/*)
foreach(header IN LISTS headers)
  if(NOT header MATCHES "^cubicml/(client|v1)/")
    message(FATAL_ERROR "installed, though it is nobody else's: ${header}")
  endif()
endforeach()
file(GLOB_RECURSE protos ${prefix}/share/cubicml/proto/*.proto)
if(NOT protos)
  message(FATAL_ERROR "the protos were not installed")
endif()

run(${CMAKE_COMMAND} -G Ninja -S ${CONSUMER_DIR} -B ${WORK_DIR}/build
  -D CMAKE_PREFIX_PATH=${prefix} -D CMAKE_CXX_COMPILER=${CXX_COMPILER})
run(${CMAKE_COMMAND} --build ${WORK_DIR}/build)
run(${WORK_DIR}/build/consumer)
