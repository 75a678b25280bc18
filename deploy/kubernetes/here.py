"""Print the pods of the scheduler, the workers and the Job as they run on one machine without a cluster.

podman has Pods but neither Jobs nor Services, so pods share the network of the machine, and the Service's name is the
loopback. All else, commands, users, roots and limits, is what the files say. `here.py FOLDER SHARED`
"""

import sys
from pathlib import Path

import yaml

folder, shared = Path(sys.argv[1]), sys.argv[2]
pods = []
for file in ("scheduler.yaml", "workers.yaml", "job.yaml"):
    for found in yaml.safe_load_all((folder / file).read_text()):
        if "template" not in found["spec"]:
            continue
        for number in range(found["spec"].get("replicas", 1)):
            pod = yaml.safe_load(yaml.safe_dump(found["spec"]["template"]["spec"]))
            name = found["metadata"]["name"] + (f"-{number}" if number else "") + "-pod"
            container = pod["containers"][0]
            container["image"] = "localhost/swsdask-check:latest"
            container["imagePullPolicy"] = "Never"
            container["resources"] = {}
            container.pop("ports", None)
            container["volumeMounts"].append({"name": "shared", "mountPath": "/shared"})
            for words in ("command", "args"):
                container[words] = [
                    word.replace("swsdask-scheduler", "127.0.0.1").replace("s3://evals/sws2013", "/shared/archive")
                    for word in container.get(words, [])
                ]
                container[words] = [word.replace("s3://evals", "/shared/out") for word in container[words]]
            if not container["command"]:
                del container["command"]
            pod["volumes"].append({"name": "shared", "hostPath": {"path": shared}})
            pod["hostNetwork"] = True
            pod.pop("serviceAccountName")
            pods.append({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": pod})
print(yaml.safe_dump_all(pods))
