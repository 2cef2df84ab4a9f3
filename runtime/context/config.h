/* SPDX-License-Identifier: Apache-2.0 */
/* Options: defaults, the environment's stand-ins, limits. It knows no machine. */
#ifndef CONFIG_H
#define CONFIG_H

#include "base.h"
#include "trama_context.h"

/* What the program gave, as far as its struct goes. E_ARGUMENT for a size that is none; own is then zeros. */
trama_status config_read(const trama_config *given, trama_config *own);

/* Every option resolved, but `workers` (0: as the machine allows) and `max_tiles` (0: the workers of a place). given
 * may be NULL. E_ARGUMENT names the option, its value and what is allowed; resolved then has the log, and a watchdog,
 * for the exchange of that error. */
trama_status config_resolve(const trama_config *given, trama_config *resolved);

/* Equal on ranks whose options agree where they must (all but workers, watchdog and log). */
uint64_t config_hash(const trama_config *config);

/* Whether the log is the default one. */
bool config_logs_to_stderr(const trama_config *config);

#endif
