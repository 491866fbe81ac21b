{{- /* Values that are fine one by one, and wrong together. */ -}}
{{- define "windrow.refuseContradictions" -}}
{{- $many := or .Values.autoscaling.enabled (gt (int .Values.replicas) 1) -}}
{{- if and .Values.embedded.enabled $many -}}
{{- fail "embedded.enabled: its SQLite file serves one replica: set replicas to 1 and autoscaling.enabled to false, or use PostgreSQL" -}}
{{- end -}}
{{- if and (not .Values.embedded.enabled) (not .Values.database.secretName) -}}
{{- fail "database.secretName is empty: name the secret with the URL of PostgreSQL, or set embedded.enabled for one replica with SQLite" -}}
{{- end -}}
{{- if and $many (not .Values.redis.secretName) -}}
{{- fail "redis.secretName is empty: several replicas share what workers cache through Redis: name the secret with its URL, or set replicas to 1" -}}
{{- end -}}
{{- if and .Values.autoscaling.enabled (gt (int .Values.autoscaling.minReplicas) (int .Values.autoscaling.maxReplicas)) -}}
{{- fail "autoscaling.minReplicas is above autoscaling.maxReplicas: lower it" -}}
{{- end -}}
{{- if and .Values.ingress.enabled (not .Values.ingress.host) -}}
{{- fail "ingress.host is empty: name the host that callers use" -}}
{{- end -}}
{{- range $name, $_ := .Values.podLabels -}}
{{- if or (hasPrefix "app.kubernetes.io/" $name) (hasPrefix "helm.sh/" $name) -}}
{{- fail (printf "podLabels: %s is what the chart knows its pods by: leave it out" $name) -}}
{{- end -}}
{{- end -}}
{{- range .Values.extraEnv -}}
{{- if has .name (list "WINDROW_DATABASE_URL" "WINDROW_REDIS_URL") -}}
{{- fail (printf "extraEnv: %s holds a password: name a secret in database or redis" .name) -}}
{{- else if and (has .name (list "AWS_SECRET_ACCESS_KEY" "AWS_SESSION_TOKEN" "PGPASSWORD")) (not .valueFrom) -}}
{{- fail (printf "extraEnv: %s is a secret, and values are not: take it out of one with valueFrom" .name) -}}
{{- else if has .name (list "WINDROW_HOST" "WINDROW_PORT" "WINDROW_STATE_DIR") -}}
{{- fail (printf "extraEnv: the probes, the Service and the volumes rely on the chart's own %s: leave it out" .name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
