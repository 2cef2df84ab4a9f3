/* SPDX-License-Identifier: Apache-2.0 */
/* The variables of StarPU: those that Trama sets until trama_stop, and those that the user has set, checked before
 * StarPU reads them, since it ends the process where it cannot. */
#ifndef ENVIRONMENT_H
#define ENVIRONMENT_H

#include "base.h"

/* Sets a variable that the user has not set; ours: in any case. */
void environment_set(const char *name, const char *value, bool ours);
void environment_set_number(const char *name, int value);
void environment_restore(void); /* all of them are as they were */

/* E_ARGUMENT names the variable, its value and what is expected. */
trama_status environment_check(void);

/* home.c: gives StarPU a folder for its measurements that can be written, by STARPU_HOME: that of the user; else one of
 * the caches; else a fresh one, which home_leave removes. E_SYSTEM names what was tried. XDG_CACHE_HOME is away until
 * home_found, when StarPU has started, or home_leave. */
trama_status home_find(void);
void home_found(void);
void home_leave(void);

#endif
