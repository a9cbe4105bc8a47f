# The installed headers, relative to runtime/include/rota. tests/check_tree sees that none is forgotten.
set(rota_public_headers
  actor.h
  array.h
  config.h
  detail/archives.h
  detail/core.h
  detail/frame.h
  detail/registry.h
  detail/session_state.h
  detail/submit.h
  detail/types.h
  detail/wire.h
  error.h
  facts.h
  get.h
  options.h
  put.h
  ref.h
  rota.h
  serialize.h
  session.h
  task.h)

# Those that include mpi.h.
set(rota_mpi_headers
  mpi.h)

# Those of a rota with HDF5; they include nothing of its library.
set(rota_hdf5_headers
  detail/hdf5.h
  hdf5.h)
