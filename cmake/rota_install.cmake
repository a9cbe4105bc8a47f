# The public face of target `rota`: its headers, what programs that link to it inherit, and the installed package.
set(headers ${PROJECT_SOURCE_DIR}/runtime/include/rota)
include(rota_public_headers) # sets rota_public_headers, rota_mpi_headers, rota_hdf5_headers
if(ROTA_WITH_HDF5)
  list(APPEND rota_public_headers ${rota_hdf5_headers})
endif()

list(TRANSFORM rota_public_headers PREPEND ${headers}/)
list(TRANSFORM rota_mpi_headers PREPEND ${headers}/)
target_sources(rota PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/runtime/include FILES ${rota_public_headers})
if(rota_mpi_headers)
  # Needs mpi.h, which rota::rota does not pass on: a program that includes it links its own MPI.
  target_sources(rota PUBLIC FILE_SET mpi TYPE HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/runtime/include
                             FILES ${rota_mpi_headers})
endif()

# Ranks prove by build id that they run the same program.
target_link_options(rota INTERFACE LINKER:--build-id)
target_compile_features(rota PUBLIC cxx_std_20)
set_target_properties(rota PROPERTIES
  EXPORT_NAME rota VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
  VERIFY_INTERFACE_HEADER_SETS ON INTERFACE_HEADER_SETS_TO_VERIFY HEADERS) # each header compiles alone

include(CMakePackageConfigHelpers)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/rota)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/rotaConfig.cmake.in ${PROJECT_BINARY_DIR}/rotaConfig.cmake
                              INSTALL_DESTINATION ${package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/rotaConfigVersion.cmake COMPATIBILITY SameMinorVersion)
if(rota_mpi_headers)
  set(mpi_headers FILE_SET mpi)
endif()
install(TARGETS rota EXPORT rotaTargets FILE_SET HEADERS ${mpi_headers})
install(EXPORT rotaTargets NAMESPACE rota:: DESTINATION ${package})
install(FILES ${PROJECT_BINARY_DIR}/rotaConfig.cmake ${PROJECT_BINARY_DIR}/rotaConfigVersion.cmake
        DESTINATION ${package})

# For builds without CMake. Paths are relative to the file, so that the installation may be moved.
set(pkgconfig ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH rota_up /${pkgconfig} /)
string(REGEX REPLACE "/$" "" rota_up "${rota_up}")
set(rota_pc_includes "")
get_target_property(cereal_folders cereal::cereal INTERFACE_INCLUDE_DIRECTORIES)
foreach(folder IN LISTS cereal_folders)
  if(NOT folder IN_LIST CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES)
    string(APPEND rota_pc_includes " -I${folder}")
  endif()
endforeach()
configure_file(${CMAKE_CURRENT_LIST_DIR}/rota.pc.in ${PROJECT_BINARY_DIR}/rota.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/rota.pc DESTINATION ${pkgconfig})

configure_file(${CMAKE_CURRENT_LIST_DIR}/rota.modulefile.in ${PROJECT_BINARY_DIR}/rota.modulefile @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/rota.modulefile DESTINATION ${CMAKE_INSTALL_DATADIR}/modulefiles/rota
        RENAME ${PROJECT_VERSION})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/jobscripts DESTINATION ${CMAKE_INSTALL_DATADIR}/rota FILES_MATCHING PATTERN *.sbatch)

file(RELATIVE_PATH rota_lib_from_bin /${CMAKE_INSTALL_BINDIR} /${CMAKE_INSTALL_LIBDIR})
set_target_properties(rota-info PROPERTIES INSTALL_RPATH $ORIGIN/${rota_lib_from_bin})
install(TARGETS rota-info)
