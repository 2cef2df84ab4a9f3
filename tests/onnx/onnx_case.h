/* SPDX-License-Identifier: Apache-2.0 */
/* One test of ONNX's own suite: a folder with a model, inputs and the outputs that ONNX expects. */
#ifndef ONNX_CASE_H
#define ONNX_CASE_H

#include "trama.h"

typedef enum { CASE_PASSED, CASE_FAILED, CASE_UNSUPPORTED } case_result;

/* Splits of the inputs on a mesh: layouts by number of dims, NULL: as they are. */
typedef struct case_mesh {
    const char *name, *spec; /* NULL: one process */
    bool first, last;        /* splits dim 0 along the first axis, the last dim along the last axis */
} case_mesh;

typedef struct case_report {
    case_result result;
    char op[64];       /* of the only node, or "graph of several ops" */
    char message[600]; /* why it did not pass */
} case_report;

/* Loads, runs and compares. */
void case_run(trama_context *context, const char *folder, const case_mesh *mesh, case_report *report);

#endif
