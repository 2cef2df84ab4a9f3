/* SPDX-License-Identifier: Apache-2.0 */
/* StarPU's variables: Trama sets some until trama_stop, and checks the user's before StarPU reads them, since StarPU
 * ends the process for a wrong value. */
#ifndef ENVIRONMENT_H
#define ENVIRONMENT_H

#include "base.h"
#include "trama_context.h"

/* Sets a variable unless the user has set it; ours: sets it in any case. */
void environment_set(const char *name, const char *value, bool ours);
void environment_set_number(const char *name, int value);
void environment_restore(void); /* undoes all sets */

/* E_ARGUMENT names the variable, its value and the expected form. */
trama_status environment_check(void);

/* home.c: sets STARPU_HOME to a writable folder for StarPU's measurements: the user's STARPU_HOME; else one of the
 * caches; else a fresh folder, which home_leave removes. E_SYSTEM names the folders tried. XDG_CACHE_HOME is unset
 * until home_found, which is called once StarPU has started, or home_leave. */
trama_status home_find(void);
void home_found(void);
void home_leave(void);

/* bus.c: lets StarPU find figures of the bus, so that it resets no GPU to measure them, unless the user's variables ask
 * for measured ones (STARPU_SCHED, STARPU_BUS_CALIBRATE, STARPU_PERF_MODEL_DIR). gpus: number that the process sees. */
void bus_prepare(const trama_context *c, int gpus);

#endif
