package windrow;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Collections;
import java.util.Iterator;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.ProcedureCatalog;
import org.apache.spark.sql.connector.catalog.procedures.BoundProcedure;
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.types.*;
import org.apache.spark.unsafe.types.UTF8String;

/** The procedures of a catalog, from Spark 4 on: Python knows them, and carries them out. */
abstract class Procedures implements ProcedureCatalog {
    /** Returns what Python tells of a procedure; throws what is wrong with its name. */
    abstract JsonNode procedure(Identifier name);

    /** Returns the names of all procedures in a namespace. */
    abstract String[] procedures(String[] namespace);

    /** Carries a procedure out, and returns its rows. */
    abstract JsonNode call(String procedure, ObjectNode arguments);

    @Override
    public UnboundProcedure loadProcedure(Identifier name) {
        return new Loaded(this, name);
    }

    /** Spark 4.0 does not ask for it. */
    public Identifier[] listProcedures(String[] namespace) {
        String[] names = procedures(namespace);
        Identifier[] all = new Identifier[names.length];
        for (int i = 0; i < names.length; i++) {
            all[i] = Identifier.of(new String[] {"system"}, names[i]);
        }
        return all;
    }

    /** Spark tells nothing of errors before it binds one. */
    private static final class Loaded implements UnboundProcedure {
        private final Procedures owner;
        private final Identifier name;

        Loaded(Procedures owner, Identifier name) {
            this.owner = owner;
            this.name = name;
        }

        @Override
        public String name() {
            return name.name();
        }

        @Override
        public String description() {
            return Catalog.text(owner.procedure(name), "description");
        }

        @Override
        public BoundProcedure bind(StructType given) {
            return new Known(owner, owner.procedure(name));
        }
    }

    private static final class Known implements BoundProcedure {
        private static final ObjectMapper JSON = new ObjectMapper();

        private final Procedures owner;
        private final JsonNode told;
        private final ProcedureParameter[] parameters;

        Known(Procedures owner, JsonNode told) {
            this.owner = owner;
            this.told = told;
            JsonNode all = Catalog.field(told, "parameters");
            this.parameters = new ProcedureParameter[all.size()];
            for (int i = 0; i < parameters.length; i++) {
                JsonNode one = (JsonNode) all.get(i);
                DataType type = DataType.fromDDL(Catalog.text(one, "type"));
                ProcedureParameter.Builder builder = ProcedureParameter
                    .in(Catalog.text(one, "name"), type).comment(Catalog.text(one, "comment"));
                if (!Catalog.field(one, "is_needed").asBoolean())
                    builder.defaultValue(type instanceof BooleanType ? "false" : "NULL");
                parameters[i] = builder.build();
            }
        }

        @Override
        public String name() {
            return Catalog.text(told, "name");
        }

        @Override
        public ProcedureParameter[] parameters() {
            return parameters;
        }

        @Override
        public boolean isDeterministic() {
            return false;
        }

        @Override
        public Iterator call(InternalRow input) {
            ObjectNode arguments = JSON.createObjectNode();
            for (int i = 0; i < parameters.length; i++) {
                DataType type = parameters[i].dataType();
                String name = parameters[i].name();
                if (input.isNullAt(i)) {
                    // Whoever writes NULL need not mean what is so by default.
                    if (type instanceof BooleanType) arguments.putNull(name);
                } else if (type instanceof BooleanType) {
                    arguments.put(name, input.getBoolean(i));
                } else if (type instanceof ArrayType) {
                    ArrayNode texts = arguments.putArray(name);
                    Object[] values = input.getArray(i).toObjectArray(DataTypes.StringType);
                    for (int j = 0; j < values.length; j++) {
                        texts.add(values[j] == null ? null : values[j].toString());
                    }
                } else {
                    arguments.put(name, input.getUTF8String(i).toString());
                }
            }
            return Collections.singletonList(
                new Answer(
                    StructType.fromDDL(Catalog.text(told, "columns")),
                    owner.call(name(), arguments))).iterator();
        }
    }

    private static final class Answer implements LocalScan {
        private final StructType columns;
        private final JsonNode answer;

        Answer(StructType columns, JsonNode answer) {
            this.columns = columns;
            this.answer = answer;
        }

        @Override
        public StructType readSchema() {
            return columns;
        }

        @Override
        public InternalRow[] rows() {
            InternalRow[] rows = new InternalRow[answer.size()];
            for (int i = 0; i < rows.length; i++) {
                Object[] values = new Object[columns.fields().length];
                for (int j = 0; j < values.length; j++) {
                    values[j] = value((JsonNode) ((JsonNode) answer.get(i)).get(j), j);
                }
                rows[i] = new GenericInternalRow(values);
            }
            return rows;
        }

        private Object value(JsonNode value, int at) {
            DataType type = columns.fields()[at].dataType();
            if (value.isNull()) return null;
            if (type instanceof LongType) return Long.valueOf(value.asLong());
            if (type instanceof DoubleType) return Double.valueOf(value.asDouble());
            if (type instanceof BooleanType) return Boolean.valueOf(value.asBoolean());
            return UTF8String.fromString(value.asText());
        }
    }
}
