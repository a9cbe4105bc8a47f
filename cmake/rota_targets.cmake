# Flags that every target of ours gets; never exported.
add_library(rota_flags INTERFACE)
target_compile_features(rota_flags INTERFACE cxx_std_20)
target_compile_options(rota_flags INTERFACE -Wall -Wextra -Wconversion -Wshadow $<$<BOOL:${ROTA_WERROR}>:-Werror>)
target_compile_definitions(rota_flags INTERFACE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
target_include_directories(rota_flags INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/runtime/include)
target_link_libraries(rota_flags INTERFACE Threads::Threads)
if(ROTA_SANITIZE)
  target_compile_options(rota_flags INTERFACE -fsanitize=${ROTA_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(rota_flags INTERFACE -fsanitize=${ROTA_SANITIZE})
  if(ROTA_SANITIZE MATCHES thread) # gcc warns of every atomic_thread_fence there
    target_compile_options(rota_flags INTERFACE -Wno-tsan)
  endif()
endif()

# rota_folder(rota_mpi SOURCES world.cpp ... LINKS MPI::MPI_C ...): one folder's objects, which become part of librota.
function(rota_folder name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LINKS")
  add_library(${name} OBJECT ${arg_SOURCES})
  set_target_properties(${name} PROPERTIES
    POSITION_INDEPENDENT_CODE ON UNITY_BUILD ${ROTA_UNITY} UNITY_BUILD_BATCH_SIZE 0)
  # What the library calls is its own: without this every call inside it could be replaced from outside, and is slow.
  target_compile_options(${name} PRIVATE -fno-semantic-interposition)
  target_link_libraries(${name} PUBLIC rota_flags ${arg_LINKS})
endfunction()
