/* SPDX-License-Identifier: Apache-2.0 */
/* The meshes on which training is compared with the plain loops, in one rank and over several. */
#ifndef TRAINING_H
#define TRAINING_H

#include "network.h"

static const char *const meshes[] = {NULL, "1", "dp=2", "mp=2", "dp=2,mp=2", "dp=3", "mp=3", "mp=2,dp=3", "dp=[3,1]"};
enum { N_MESHES = sizeof meshes / sizeof *meshes };

#endif
