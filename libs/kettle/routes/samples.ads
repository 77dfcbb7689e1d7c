Cmd = "/bin/sh"
JobUniverse = 5
Owner = "pilot01"
Requirements = true
RequestCpus = 1
RequestMemory = 2048
RequestDisk = 1048576

Cmd = "pilot.sh"
JobUniverse = 5
Owner = "pilot01"
Requirements = true
RequestCpus = 1
xcount = 8
maxMemory = 16000
maxWallTime = 2880
queue = "grid"
AuthTokenIssuer = "https://issuer.example/vo"
AuthTokenSubject = "pilots"

Cmd = "pilot.sh"
JobUniverse = 5
Owner = "pilot02"
Requirements = true
RequestCpus = 4
RequestMemory = ifthenelse(MemoryUsage isnt undefined,MemoryUsage,8192)
Environment = "VO=biology SITE='a b'"
BatchRuntime = 7200

Cmd = "pilot.sh"
JobUniverse = 5
Owner = "pilot02"
Requirements = TARGET.OpSys == "LINUX"
RequestCpus = 1
RequestGPUs = 2
RequestMemory = 4096
WantWholeNode = false

Cmd = "pilot.sh"
JobUniverse = 5
Owner = "pilot03"
WantWholeNode = true
minWalltime = 600
OnExitHold = ExitCode == 1
PeriodicRemove = JobStatus == 5
