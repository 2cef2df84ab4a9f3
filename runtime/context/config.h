/* SPDX-License-Identifier: Apache-2.0 */
/* Options: defaults, environment variables, limits. It knows no machine. */
#ifndef CONFIG_H
#define CONFIG_H

#include "base.h"
#include "trama_context.h"

/* Copies the fields that the program's struct has. E_ARGUMENT for an impossible size; own is then zeros. */
trama_status config_read(const trama_config *given, trama_config *own);

/* Resolves every option, except that workers, max_in_flight, max_tiles and gpu_memory stay 0 where they depend on the
 * machine or the program. given may be NULL. E_ARGUMENT names the option, its value and the allowed range; resolved
 * then has only log, fatal and a watchdog, with which the ranks exchange that error. */
trama_status config_resolve(const trama_config *given, trama_config *resolved);

/* Equal on ranks that agree in the options that all ranks share: all but workers, watchdog, device, gpu_memory,
 * gpu_steps, keep_blas_kernels, log, fatal and the folder of the trace. */
uint64_t config_hash(const trama_config *config);

/* Whether the log is the default one, stderr. */
bool config_logs_to_stderr(const trama_config *config);

#endif
