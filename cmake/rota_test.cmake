# How tests are registered. Sanitizers make everything slower, so they get four times the time.
set(rota_time_factor 1)
if(ROTA_SANITIZE)
  set(rota_time_factor 4)
endif()

# Sets `out` to the time limit in seconds: `seconds`, or 120 if that is empty, times the factor.
function(rota_time_limit out seconds)
  if(NOT seconds)
    set(seconds 120)
  endif()
  math(EXPR seconds "${seconds} * ${rota_time_factor}")
  set(${out} ${seconds} PARENT_SCOPE)
endfunction()

# rota_test(x_test)                             x_test.cpp is a unit test: no MPI, one ctest entry per TEST
# rota_test(x_test RANKS 1 2 3 4 MPI)           runs under mpirun, every rank runs every TEST (ranks/mpi_main.cpp)
# rota_test(x_test RANKS 1 2 3 4 SESSION)       runs in a session: rank 0 runs the TESTs, the others serve
#                                               (ranks/session_main.cpp)
#   EMBEDDED     with SESSION: once more, as a plain program without mpirun
#   TIMEOUT s    of one entry; default 120
#   SOURCES ...  further sources    LINKS ... further libraries
function(rota_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "MPI;SESSION;EMBEDDED" "TIMEOUT" "RANKS;SOURCES;LINKS")
  if(arg_UNPARSED_ARGUMENTS OR (arg_RANKS AND NOT (arg_MPI OR arg_SESSION)))
    message(FATAL_ERROR "rota_test(${name}): unknown '${arg_UNPARSED_ARGUMENTS}', or RANKS without MPI or SESSION")
  endif()
  rota_time_limit(seconds "${arg_TIMEOUT}")
  rota_test_program(${name} SOURCES ${arg_SOURCES} LINKS ${arg_LINKS})
  if(arg_MPI)
    target_link_libraries(${name} PRIVATE rota_mpi_main)
  elseif(arg_SESSION OR arg_EMBEDDED)
    target_link_libraries(${name} PRIVATE rota_session_main)
  else()
    target_link_libraries(${name} PRIVATE GTest::gtest_main GTest::gmock)
    gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60 TEST_PREFIX unit.
                         PROPERTIES TIMEOUT ${seconds} PROCESSORS 1 LABELS unit)
  endif()
  foreach(n IN LISTS arg_RANKS)
    set(processors 2)
    if(n EQUAL 1)
      set(processors 1)
    endif()
    add_test(NAME ranks.${name}.np${n} COMMAND ${PROJECT_SOURCE_DIR}/scripts/launch ${n} $<TARGET_FILE:${name}>)
    set_tests_properties(ranks.${name}.np${n} PROPERTIES TIMEOUT ${seconds} PROCESSORS ${processors} LABELS ranks)
  endforeach()
  if(arg_EMBEDDED)
    add_test(NAME ranks.${name}.embedded COMMAND ${name})
    set_tests_properties(ranks.${name}.embedded PROPERTIES TIMEOUT ${seconds} PROCESSORS 2 LABELS ranks)
  endif()
endfunction()

# rota_test_program(x): x.cpp is a program that tests start by themselves, not a test.
function(rota_test_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LINKS")
  add_executable(${name} ${name}.cpp ${arg_SOURCES})
  add_dependencies(rota_tests ${name})
  target_link_libraries(${name} PRIVATE rota rota_flags ${arg_LINKS})
endfunction()

# rota_program_test(x PROGRAMS kmers quickstart [TIMEOUT s]): the executable script x.sh is run with the paths of the
# programs as its arguments, in that order; ROTA_LAUNCH is the path of scripts/launch, ROTA_DATA that of the data files
# of kmers, ROTA_TIME_FACTOR what its own time limits are to be multiplied by, ROTA_WITH_HDF5 1 or 0. Its exit status is
# the verdict.
function(rota_program_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "PROGRAMS")
  set(paths)
  foreach(program IN LISTS arg_PROGRAMS)
    list(APPEND paths $<TARGET_FILE:${program}>)
    add_dependencies(rota_tests ${program})
  endforeach()
  add_test(NAME ranks.${name} COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/${name}.sh ${paths})
  rota_time_limit(seconds "${arg_TIMEOUT}")
  set(environment ROTA_LAUNCH=${PROJECT_SOURCE_DIR}/scripts/launch ROTA_DATA=${PROJECT_SOURCE_DIR}/apps/kmers/data
                  ROTA_TIME_FACTOR=${rota_time_factor} ROTA_WITH_HDF5=$<BOOL:${ROTA_WITH_HDF5}>)
  set_tests_properties(ranks.${name} PROPERTIES TIMEOUT ${seconds} PROCESSORS 2 LABELS ranks
                                                ENVIRONMENT "${environment}")
endfunction()

# rota_cluster_test(x NODES 3 [PROGRAMS ...] [SETTINGS ROTA_CLUSTER_CPUS=8 ...] [TIMEOUT s]): the script x.sh is run by
# tests/cluster/cluster beside a Slurm cluster of NODES nodes, with the paths of the programs as its arguments. Its exit
# status is the verdict. Skipped, with a word, where the machine cannot have such nodes. The logs of the cluster are in
# Testing/cluster/x of the build folder.
function(rota_cluster_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "NODES;TIMEOUT" "PROGRAMS;SETTINGS")
  set(paths)
  foreach(program IN LISTS arg_PROGRAMS)
    list(APPEND paths $<TARGET_FILE:${program}>)
    add_dependencies(rota_tests ${program})
  endforeach()
  add_test(NAME cluster.${name}
           COMMAND ${PROJECT_SOURCE_DIR}/tests/cluster/cluster run ${arg_NODES} --
                   bash ${CMAKE_CURRENT_SOURCE_DIR}/${name}.sh ${paths})
  rota_time_limit(seconds "${arg_TIMEOUT}")
  set(environment ROTA_CLUSTER_SHARED=${PROJECT_BINARY_DIR} ROTA_TIME_FACTOR=${rota_time_factor}
                  ROTA_CLUSTER_LOGS=${PROJECT_BINARY_DIR}/Testing/cluster/${name} ${arg_SETTINGS})
  set_tests_properties(cluster.${name} PROPERTIES TIMEOUT ${seconds} PROCESSORS 1 LABELS cluster SKIP_RETURN_CODE 77
                                                  ENVIRONMENT "${environment}")
endfunction()
