/* SPDX-License-Identifier: Apache-2.0 */
/* Options: a value from the user's configuration, else from the environment, else the default; each within its
 * limits. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "hash.h"
#include "machine.h"
#include "sized.h"

static void log_to_stderr(void *data, trama_log_level level, const char *line)
{
    static const char *const names[] = {"error", "warning", "info"};
    (void)data;
    if (level <= TRAMA_LOG_WARNING)
        fprintf(stderr, "trama: %s: %s\n", names[level], line);
}

bool config_logs_to_stderr(const trama_config *config)
{
    return config->log == log_to_stderr;
}

typedef struct option {
    const char *name, *variable; /* variable: NULL where the environment does not set it */
    int64_t standard, most;
} option;

/* value: the user's; 0 takes the environment's, then the default. */
static trama_status resolve(const option *o, int64_t value, int64_t *result)
{
    const char *source = o->name, *given = o->variable ? getenv(o->variable) : NULL;
    if (value == 0 && given && *given) {
        char *end;
        errno = 0;
        value = strtoll(given, &end, 10);
        source = o->variable;
        if (*end || errno)
            return trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "%s is \"%s\": a number from 0 to %lld is expected", source,
                              given, (long long)o->most);
    }
    if (value < 0 || value > o->most)
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "%s is %lld: a number from 0 to %lld is expected", source,
                          (long long)value, (long long)o->most);
    *result = value ? value : o->standard;
    return TRAMA_OK;
}

static trama_status resolve_int(const option *o, int *value)
{
    int64_t result = 0;
    trama_status status = resolve(o, *value, &result);
    if (!status)
        *value = (int)result;
    return status;
}

static trama_status resolve_flag(const char *variable, bool *flag)
{
    const char *given = getenv(variable);
    if (given && *given && strcmp(given, "0") && strcmp(given, "1"))
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "%s is \"%s\": 0 or 1 is expected", variable, given);
    *flag |= given && *given == '1';
    return TRAMA_OK;
}

static trama_status resolve_flags(trama_config *c)
{
    const struct {
        const char *variable;
        bool *flag;
    } flags[] = {{"TRAMA_TF32", &c->tf32},
                 {"TRAMA_CHECK_CALLS", &c->check_calls},
                 {"TRAMA_MAP_BY_ORDER", &c->map_by_order},
                 {"TRAMA_VERIFY", &c->verify},
                 {"TRAMA_KEEP_AFFINITY", &c->keep_affinity}};
    trama_status status = TRAMA_OK;
    for (size_t i = 0; i < sizeof flags / sizeof *flags && !status; i++)
        status = resolve_flag(flags[i].variable, flags[i].flag);
    return status;
}

static trama_status resolve_device(trama_device *device)
{
    static const char *const names[] = {[TRAMA_CPU] = "cpu", [TRAMA_GPU] = "gpu", [TRAMA_AUTO] = "auto"};
    const char *given = getenv("TRAMA_DEVICE");
    if (*device < TRAMA_DEVICE_DEFAULT || *device > TRAMA_AUTO)
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "config.device is %d, which is no trama_device", (int)*device);
    for (int i = TRAMA_CPU; *device == TRAMA_DEVICE_DEFAULT && given && *given && i <= TRAMA_AUTO; i++)
        if (!strcmp(given, names[i]))
            *device = (trama_device)i;
    if (*device == TRAMA_DEVICE_DEFAULT && given && *given)
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "TRAMA_DEVICE is \"%s\": cpu, gpu or auto is expected", given);
    if (*device == TRAMA_DEVICE_DEFAULT)
        *device = TRAMA_CPU;
    return TRAMA_OK;
}

static trama_status resolve_sum(bool *nccl_sums)
{
    const char *given = getenv("TRAMA_SUM");
    if (*nccl_sums || !given || !*given || !strcmp(given, "fixed"))
        return TRAMA_OK;
    *nccl_sums = !strcmp(given, "nccl");
    return *nccl_sums ? TRAMA_OK
                      : trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "TRAMA_SUM is \"%s\": fixed or nccl is expected", given);
}

static trama_status resolve_all(trama_config *c)
{
    trama_status status;
    if ((status = resolve_int(&(option){"config.workers", "TRAMA_WORKERS", 0, 1024}, &c->workers)) ||
        (status = resolve_int(&(option){"config.max_in_flight", "TRAMA_MAX_IN_FLIGHT", 0, 64}, &c->max_in_flight)) ||
        (status = resolve_int(&(option){"config.max_tiles", "TRAMA_MAX_TILES", 0, 65536}, &c->max_tiles)) ||
        (status = resolve_int(&(option){"config.watchdog", "TRAMA_WATCHDOG", 30, 1000000}, &c->watchdog)) ||
        (status =
             resolve(&(option){"config.grain_flops", NULL, 2000000, INT64_MAX}, c->grain_flops, &c->grain_flops)) ||
        (status = resolve(&(option){"config.grain_bytes", NULL, 65536, INT64_MAX}, c->grain_bytes, &c->grain_bytes)) ||
        (status = resolve(&(option){"config.staging_bytes", "TRAMA_STAGING_BYTES", 64 << 20, INT32_MAX},
                          c->staging_bytes, &c->staging_bytes)) ||
        (status = resolve(&(option){"config.arena_bytes", "TRAMA_ARENA_BYTES", 64 << 20, INT64_MAX}, c->arena_bytes,
                          &c->arena_bytes)) ||
        (status = resolve(&(option){"config.loan_bytes", "TRAMA_LOAN_BYTES", LOAN_BYTES, INT64_MAX}, c->loan_bytes,
                          &c->loan_bytes)) ||
        (status = resolve_int(&(option){"config.gpu_steps", "TRAMA_GPU_STEPS", 256, 65536}, &c->gpu_steps)) ||
        (status = resolve(&(option){"config.nominal", NULL, 1024, INT64_MAX}, c->nominal, &c->nominal)))
        return status;
    if (!c->trace || !*c->trace)
        c->trace = getenv("TRAMA_TRACE");
    if (c->trace && !*c->trace)
        c->trace = NULL;
    if ((status = resolve_flags(c)) || (status = resolve_device(&c->device)) || (status = resolve_sum(&c->nccl_sums)) ||
        (status =
             resolve(&(option){"config.gpu_memory", "TRAMA_GPU_MEMORY", 0, INT64_MAX}, c->gpu_memory, &c->gpu_memory)))
        return status;
    return TRAMA_OK;
}

trama_status config_read(const trama_config *given, trama_config *own)
{
    return sized_read(NOWHERE, "trama_start", SIZED(trama_config, fatal_data), own, given);
}

trama_status config_resolve(const trama_config *given, trama_config *resolved)
{
    trama_config c = {0};
    trama_status status = given ? config_read(given, &c) : TRAMA_OK;
    if (!status)
        status = resolve_all(&c);
    if (status)
        c = (trama_config){
            .watchdog = 30, .log = c.log, .log_data = c.log_data, .fatal = c.fatal, .fatal_data = c.fatal_data};
    c.communicator = NULL;
    if (!c.log) {
        c.log = log_to_stderr;
        c.log_data = NULL;
    }
    *resolved = c;
    return status;
}

uint64_t config_hash(const trama_config *config)
{
    const int64_t same[] = {config->max_in_flight, config->max_tiles,     config->grain_flops,   config->grain_bytes,
                            config->nominal,       config->no_fusion,     config->check_calls,   config->verify,
                            config->map_by_order,  config->staging_bytes, config->trace != NULL, config->tf32,
                            config->nccl_sums,     config->arena_bytes,   config->loan_bytes};
    return hash_bytes(HASH_START, same, sizeof same);
}
