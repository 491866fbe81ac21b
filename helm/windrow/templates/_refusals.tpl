{{- /* Values that are valid one by one, but not together. */ -}}
{{- define "windrow.refuseContradictions" -}}
{{- $many := or .Values.autoscaling.enabled (gt (int .Values.replicas) 1) -}}
{{- if and .Values.embedded.enabled $many -}}
{{- fail "embedded.enabled: one SQLite file serves only one replica: set replicas to 1 and autoscaling.enabled to false, or use PostgreSQL" -}}
{{- end -}}
{{- if and (not .Values.embedded.enabled) (not .Values.database.secretName) -}}
{{- fail "database.secretName is empty: name the secret that has PostgreSQL's URL, or set embedded.enabled for one replica with SQLite" -}}
{{- end -}}
{{- if and .Values.backup.enabled .Values.embedded.enabled -}}
{{- fail "backup.enabled: there is no PostgreSQL to dump with embedded.enabled: back up the claim's volume instead" -}}
{{- end -}}
{{- if and .Values.maintenance.job.enabled (not .Values.maintenance.job.image) -}}
{{- fail "maintenance.job.image is empty: name an image with Java and windrow-spark[spark]" -}}
{{- end -}}
{{- if and .Values.maintenance.job.enabled (not .Values.maintenance.job.tokenSecretName) (not .Values.serveWithoutAuthentication) -}}
{{- fail "maintenance.job.tokenSecretName is empty: name the secret with a token that has `write` on the tables" -}}
{{- end -}}
{{- if and $many (not .Values.redis.secretName) -}}
{{- fail "redis.secretName is empty: several replicas share the cache map through Redis: name the secret that has its URL, or set replicas to 1" -}}
{{- end -}}
{{- if and .Values.autoscaling.enabled (gt (int .Values.autoscaling.minReplicas) (int .Values.autoscaling.maxReplicas)) -}}
{{- fail "autoscaling.minReplicas is above autoscaling.maxReplicas: lower it" -}}
{{- end -}}
{{- if and .Values.ingress.enabled (not .Values.ingress.host) -}}
{{- fail "ingress.host is empty: set the host name that callers use" -}}
{{- end -}}
{{- if and .Values.httpRoute.enabled (not .Values.httpRoute.parentRefs) -}}
{{- fail "httpRoute.parentRefs is empty: name the gateway that callers use" -}}
{{- end -}}
{{- if and (not .Values.metrics.enabled) (or .Values.metrics.serviceMonitor.enabled .Values.metrics.alerts.enabled .Values.metrics.dashboard.enabled) -}}
{{- fail "metrics.enabled is false, but a serviceMonitor, alerts or a dashboard need it: set it to true" -}}
{{- end -}}
{{- range $name, $issuer := .Values.issuers -}}
{{- if and $issuer.sign_in (not $.Values.publicUrl) -}}
{{- fail (printf "publicUrl is empty: people sign in with issuers.%s, which must know where to send them back" $name) -}}
{{- end -}}
{{- end -}}
{{- range $name, $_ := .Values.podLabels -}}
{{- if or (hasPrefix "app.kubernetes.io/" $name) (hasPrefix "helm.sh/" $name) -}}
{{- fail (printf "podLabels: the chart selects its pods by %s: leave it out" $name) -}}
{{- end -}}
{{- end -}}
{{- range concat .Values.extraEnv .Values.backup.extraEnv .Values.maintenance.job.extraEnv -}}
{{- if has .name (list "WINDROW_DATABASE_URL" "WINDROW_REDIS_URL") -}}
{{- fail (printf "extraEnv: %s contains a password: name a secret in database or redis" .name) -}}
{{- else if and (or (has .name (list "AWS_SECRET_ACCESS_KEY" "AWS_SESSION_TOKEN" "PGPASSWORD")) (hasSuffix "__CLIENT_SECRET" .name)) (not .valueFrom) -}}
{{- fail (printf "extraEnv: %s is secret, and values are not: take it from a secret with valueFrom" .name) -}}
{{- else if has .name (list "WINDROW_HOST" "WINDROW_PORT" "WINDROW_STATE_DIR") -}}
{{- fail (printf "extraEnv: the probes, the Service and the volumes rely on the chart's own %s: leave it out" .name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
