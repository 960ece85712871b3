# SPDX-License-Identifier: Apache-2.0
# An option of a backend does what it says: cmake -DPARTITA=FOLDER -DBUILD=FOLDER -DNPZ_IS_HERE=BOOL
#                                                 -DCXX=COMPILER -DGENERATOR=NAME -DMAKE=PROGRAM -P backends.cmake
# expect(WORDS OPTION...): configuring with these options says so.
function(expect words)
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${PARTITA} -B ${BUILD} -G ${GENERATOR}
                          -DCMAKE_MAKE_PROGRAM=${MAKE} -DCMAKE_CXX_COMPILER=${CXX} -DPARTITA_BUILD_TESTS=OFF
                          -DPARTITA_BUILD_EXAMPLES=OFF -DPARTITA_BUILD_BENCH=OFF -DPARTITA_MPI=OFF -DPARTITA_BLAS=OFF
                          -DPARTITA_ZLIB=OFF -DPARTITA_JSON=OFF -DPARTITA_DLPACK=OFF -DPARTITA_METIS=OFF -DPARTITA_CUDA=OFF -DCMAKE_DISABLE_FIND_PACKAGE_LibZip=OFF ${ARGN}
                  OUTPUT_VARIABLE said ERROR_VARIABLE said)
  string(REGEX REPLACE "[ \n]+" " " said "${said}")
  string(FIND "${said}" "${words}" at)
  if(at EQUAL -1)
    message(SEND_ERROR "with ${ARGN} partita does not say '${words}', but: ${said}")
  endif()
endfunction()

file(REMOVE_RECURSE ${BUILD})
set(without -DCMAKE_DISABLE_FIND_PACKAGE_LibZip=ON)
expect("backends here: threads -- Configuring done" ${without})
expect("PARTITA_NPZ is ON, but no LibZip with LibZip::LibZip was found." -DPARTITA_NPZ=ON ${without})
expect("PARTITA_NPZ is maybe, and must be AUTO, ON or OFF." -DPARTITA_NPZ=maybe)
expect("PARTITA_CUBLAS is ON, but PARTITA_CUDA, which it needs, is OFF." -DPARTITA_NPZ=OFF -DPARTITA_CUBLAS=ON)
expect("backends here: threads -- Configuring done" -DPARTITA_CUBLAS=AUTO)
if(NPZ_IS_HERE)
  expect("backends here: threads npz -- Configuring done" -DPARTITA_NPZ=AUTO)
  expect("backends here: threads npz -- Configuring done" -DPARTITA_NPZ=ON)
endif()
