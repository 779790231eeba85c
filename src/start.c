/* The library's start: fills the tables through which lower layers reach higher ones. The only file that knows every layer. */
#include "autograd/tape.h"
#include "cpu/cpu.h"
#include "ops/op.h"

__attribute__((constructor)) static void start(void)
{
    tmi_devices[TM_CPU] = &tmi_cpu_ops;
    tmi_layers.autograd = tmi_autograd_call;
    tmi_autograd_init();
}
