# What `cmake --install` installs. For others to build against (component
# development): the client library and the protos, as the package cubicml with
# the target cubicml::client, and nothing else. To run (component runtime): the
# programs, of which all but cubicml are installed where they are made.
include(CMakePackageConfigHelpers)

set(cubicml_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/cubicml)
set_target_properties(cubicml_client PROPERTIES EXPORT_NAME client)
set_target_properties(cubicml_proto PROPERTIES EXPORT_NAME proto)
set_target_properties(cubicml_proto_grpc PROPERTIES EXPORT_NAME proto_grpc)

install(TARGETS cubicml_client cubicml_proto cubicml_proto_grpc
  EXPORT cubicmlTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
install(EXPORT cubicmlTargets NAMESPACE cubicml::
  DESTINATION ${cubicml_package_dir} COMPONENT development)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/client/include/cubicml
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
  FILES_MATCHING PATTERN "*.h")
install(DIRECTORY ${PROJECT_BINARY_DIR}/generated/cubicml/v1
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/cubicml COMPONENT development
  FILES_MATCHING PATTERN "*.h")
install(DIRECTORY ${PROJECT_SOURCE_DIR}/proto/cubicml/v1
  DESTINATION ${CMAKE_INSTALL_DATADIR}/cubicml/proto/cubicml
  COMPONENT development FILES_MATCHING PATTERN "*.proto")

configure_package_config_file(
  ${PROJECT_SOURCE_DIR}/cmake/cubicmlConfig.cmake.in
  ${PROJECT_BINARY_DIR}/package/cubicmlConfig.cmake
  INSTALL_DESTINATION ${cubicml_package_dir})
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/package/cubicmlConfigVersion.cmake
  COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/package/cubicmlConfig.cmake
              ${PROJECT_BINARY_DIR}/package/cubicmlConfigVersion.cmake
  DESTINATION ${cubicml_package_dir} COMPONENT development)

install(TARGETS cubicml
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime)
