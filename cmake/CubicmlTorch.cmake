# LibTorch as a system library: its headers are not held to our warnings, and
# its flags reach only the targets that ask for cubicml::torch.
find_package(Torch REQUIRED)
add_library(cubicml_torch INTERFACE)
add_library(cubicml::torch ALIAS cubicml_torch)
target_include_directories(cubicml_torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
target_link_libraries(cubicml_torch INTERFACE ${TORCH_LIBRARIES})
separate_arguments(cubicml_torch_flags UNIX_COMMAND "${TORCH_CXX_FLAGS}")
target_compile_options(cubicml_torch INTERFACE ${cubicml_torch_flags})
