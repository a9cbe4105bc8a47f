#pragma once

// Tasks, actors and distributed objects on MPI ranks. docs/api.md shows it by example.
#include <rota/actor.h>
#include <rota/array.h>
#include <rota/config.h>
#include <rota/error.h>
#include <rota/facts.h>
#include <rota/get.h>
#include <rota/options.h>
#include <rota/put.h>
#include <rota/ref.h>
#include <rota/serialize.h>
#include <rota/session.h>
#include <rota/task.h>
