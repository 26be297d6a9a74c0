# SPDX-License-Identifier: Apache-2.0
# Install rules: headers, libraries, command, CMake package, pkg-config file;
# and the target `uninstall`, which removes exactly what was installed.
include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/isthmus")

# Folders that are not there yet are noted, so that uninstall removes those,
# and no others. First rule in this file: it runs before anything is made.
install(CODE "set(ISTHMUS_FOLDERS
    ${CMAKE_INSTALL_LIBDIR}/cmake/isthmus ${CMAKE_INSTALL_LIBDIR}/pkgconfig
    ${CMAKE_INSTALL_INCLUDEDIR}/isthmus ${CMAKE_INSTALL_BINDIR}
    ${CMAKE_INSTALL_LIBEXECDIR}/isthmus
    ${CMAKE_INSTALL_MANDIR}/man1
    ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
    ${CMAKE_INSTALL_DATADIR}/zsh/site-functions
    ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
  set(ISTHMUS_NOTE \"${PROJECT_BINARY_DIR}/install_folders.txt\")"
  COMPONENT isthmus_note)
install(SCRIPT cmake/isthmus_note_folders.cmake COMPONENT isthmus_note)

install(FILES ${ISTHMUS_HEADERS}
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/isthmus")
install(TARGETS isthmus_shared isthmus_static EXPORT isthmus_targets
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
if(TARGET isthmus_command)
  install(TARGETS isthmus_command
    RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
  install(TARGETS isthmus_probe RUNTIME DESTINATION "${ISTHMUS_PROBE_DIR}")
  install(FILES cli/isthmus.1 DESTINATION "${CMAKE_INSTALL_MANDIR}/man1")
  set(completions "${CMAKE_INSTALL_DATADIR}")
  install(FILES cli/completions/isthmus.bash RENAME isthmus
    DESTINATION "${completions}/bash-completion/completions")
  install(FILES cli/completions/_isthmus
    DESTINATION "${completions}/zsh/site-functions")
  install(FILES cli/completions/isthmus.fish
    DESTINATION "${completions}/fish/vendor_completions.d")
endif()
install(EXPORT isthmus_targets NAMESPACE isthmus::
  FILE isthmus-targets.cmake DESTINATION "${package_dir}")
configure_package_config_file(cmake/isthmus-config.cmake.in
  "${PROJECT_BINARY_DIR}/isthmus-config.cmake"
  INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file(
  "${PROJECT_BINARY_DIR}/isthmus-config-version.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/isthmus-config.cmake"
  "${PROJECT_BINARY_DIR}/isthmus-config-version.cmake"
  DESTINATION "${package_dir}")
file(RELATIVE_PATH ISTHMUS_PC_UP
  "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
configure_file(cmake/isthmus.pc.in isthmus.pc @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/isthmus.pc"
  DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

add_custom_target(uninstall
  COMMAND "${CMAKE_COMMAND}" "-DBUILD=${PROJECT_BINARY_DIR}"
    -P "${PROJECT_SOURCE_DIR}/cmake/isthmus_uninstall.cmake")
