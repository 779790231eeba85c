/* The CPU device. */
#ifndef TMI_CPU_H
#define TMI_CPU_H

#include "ops/op.h"

extern const tmi_device_ops tmi_cpu_ops;   /* generated from the .ops files */

#endif
