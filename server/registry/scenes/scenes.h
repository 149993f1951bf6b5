// SPDX-License-Identifier: Apache-2.0
/* Named scenes and their families, and how they are journalled. */
#ifndef VXD_SERVER_REGISTRY_SCENES_SCENES_H
#define VXD_SERVER_REGISTRY_SCENES_SCENES_H

#include "server/registry/scenes/named_scenes.h"
#include "server/registry/scenes/scene_fusion.h"
#include "server/registry/scenes/scenes_journal.h"

#endif
