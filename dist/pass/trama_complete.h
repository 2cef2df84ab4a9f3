/* SPDX-License-Identifier: Apache-2.0 */
/* Completion, to look at: which layout every value of a program gets, without a context. */
#ifndef TRAMA_COMPLETE_H
#define TRAMA_COMPLETE_H

#include "trama_program.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Completes a copy of the program and says a line for each value: name, type, shape, "on MESH as LAYOUT", its stage and
 * where it rests if it is marked so; before them the order of processes, behind them a line for each conflict. nominal:
 * the extent that TRAMA_ANY is taken for, >= 1, halved until every tensor has at most 2^60 bytes. Errors: the program's
 * first, E_LAYOUT, E_ARGUMENT and E_MEMORY as trama_compile has them; *text is set on TRAMA_OK only. The caller frees.
 */
trama_status trama_complete_text(const trama_program *program, int64_t nominal, char **text);

#ifdef __cplusplus
}
#endif
#endif
