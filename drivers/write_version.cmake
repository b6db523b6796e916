# safe.directory: a source tree mounted into a container belongs to another user.
execute_process(COMMAND git -c safe.directory=${SOURCE} -C ${SOURCE} describe --always --dirty OUTPUT_VARIABLE NQF_GIT_REVISION
  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed OR NOT NQF_GIT_REVISION)
  set(NQF_GIT_REVISION "unknown")
endif()
configure_file(${CMAKE_CURRENT_LIST_DIR}/version.hpp.in ${OUTPUT} @ONLY)
